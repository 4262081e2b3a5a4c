"""From documents to a Spec: every reference resolved, every unit exact, all faults at once."""
