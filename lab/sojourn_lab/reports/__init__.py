"""Writers of reports: papers, scorecards, recommendations, the kernel's TCP, intervals."""
