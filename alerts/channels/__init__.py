"""Ways to people, one file a kind: each says through one narrow seam whether a notification was taken."""
