"""A result as a document.

Modules: `success_rate`, `agreement`, `judge`, `gates`, `plans`, `reference`, `status`.
"""
