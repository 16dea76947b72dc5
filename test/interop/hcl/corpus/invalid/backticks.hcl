a = `b`
