"""A result as a document.

Modules: `success_rate`, `agreement`, `judge`, `judging`, `gates`, `plans`, `reference`, `status`,
`trials`.
"""
