"""Values that more than one part of Proctor spells: frozen types, enums, parse and format. No I/O."""
