; JavaScript beyond ecmascript.scm.

(field_definition) @symbol.field
(using_declaration) @declare

; Last, so that no role is given to a name that is not there.
(MISSING) @token
