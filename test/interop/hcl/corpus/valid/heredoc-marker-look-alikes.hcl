a = <<EOT
EOTX
 EOT x
xEOT
${"x"}EOT
  EOT  
b = 1
