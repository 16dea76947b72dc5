a = "x ${~ y ~} z"
