; Python. Captures are explained in cq/syntax/language.py; there is one in every pattern.

(string) @opaque
(interpolation) @hole
(type_conversion) @opaque
(format_specifier) @opaque
(format_expression) @hole
["match" "case" "type" "_" "print" "exec" "__future__"] @token
(comment) @comment

(function_definition) @symbol.function
(class_definition) @symbol.class
(lambda) @symbol.lambda
(type_alias_statement) @symbol.type

(decorated_definition) @decorated
(decorator) @decorator

(call) @call

(import_statement) @import
(import_from_statement) @import.from
(future_import_statement) @import.future

(assignment) @assignment
(augmented_assignment) @flow.augment
(named_expression) @flow.walrus
(for_statement) @flow.for
(for_in_clause) @flow.for
(as_pattern) @flow.as
(with_item) @run.with
(binary_operator) @run.operator
(comparison_operator operators: ["<" ">" "<=" ">=" "==" "!="]) @run.compare
(comparison_operator operators: ["in" "not in"]) @run.in
(unary_operator) @run.unary
(interpolation) @run.format
(if_statement condition: (identifier) @run.truth)
(while_statement condition: (identifier) @run.truth)
(not_operator argument: (identifier) @run.truth)
(subscript) @run.item
(if_statement) @branch.if
(while_statement) @branch.while
(assert_statement) @branch.assert
(try_statement) @branch.try
(with_statement) @branch.with
(match_statement) @branch.match
(except_clause) @flow.catch
(case_pattern) @flow.case
(return_statement) @flow.return
(raise_statement) @flow.raise
(await) @flow.await
(yield) @flow.yield
(global_statement) @scoped.global
(nonlocal_statement) @scoped.nonlocal

(type) @span.type
(type (string) @forward)
(type (binary_operator (string) @forward))
(keyword_argument name: (identifier) @role.keyword)
