"""A first plan in seconds: replicas and gangs where each spoils least, all hard rules kept."""
