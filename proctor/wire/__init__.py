"""Between the contracts and the values: one conversion for messages whose fields a value has as well."""
