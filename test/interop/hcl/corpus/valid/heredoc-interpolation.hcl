a = <<E
${ b } %{ if c }d%{ endif }
$${e}
E
