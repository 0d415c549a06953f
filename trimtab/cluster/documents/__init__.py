"""What authors write as YAML, declared once: a field of a dataclass says where its value stands and what it takes.

value_types            what a field takes: how it is parsed, its JSON Schema, how a page writes it
declared_fields        the declaration of a field, and the fields of a class as a tree of sections
read_document          reads a section of a document, and collects all mistakes in it
document_schema        the JSON Schema of a section
"""
