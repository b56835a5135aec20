"""A result as a document.

Modules: `success_rate`, `agreement`, `judge`, `judging`, `gates`, `trials`, `reliability`,
`plans`, `reference`, `status`, `taxonomy`, `tools`, `ranking`, `layers`, `look`.
"""
