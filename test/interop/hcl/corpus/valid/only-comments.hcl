# one
// two
/* three
   four */
