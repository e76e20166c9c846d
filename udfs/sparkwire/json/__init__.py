"""JSON: strict scans, values as columns, and columns as JSON. It is the format inside of Databus, DataHub and Debezium messages.

JSON is exactly as in RFC 8259, in UTF-8: NaN, comments, trailing commas and raw control characters are corruption. If a key
repeats in an object, the last value wins. Nesting has no limit. No value becomes a Python object: a value is a span of its
document.

Read the modules in this order:

    grammar     the ends and kinds of values: kernels
    scan        one pass over documents: validates each, and locates selected values; template compares alike documents
    members     the members of objects and the items of arrays
    texts       values as texts and numbers
    values      the values of a batch, and their conversion to columns: the entrance for formats
    images      the images of rows: objects with access to their members
    types, readers, conversions, mysql_types, typed_images   typed columns of images
    escapes, columns   columns as JSON
"""
