a = “b”
