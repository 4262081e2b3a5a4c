"""Gang-placement cases in a neutral form: read, declared as documents, planned, checked and compared."""
