a = "%{ while b }c%{ endwhile }"
