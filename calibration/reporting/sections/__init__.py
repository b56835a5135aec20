"""A result as a document: `success_rate`, `agreement`, `judge`, `gates`, `plans`, `reference`."""
