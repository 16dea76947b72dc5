a = <<EOT
line }
  b = 1
EOT
c = 2
