a = <<-EOT
    one
      two
    EOT
c = 2
