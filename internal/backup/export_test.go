package backup

// Limit is what a stream may unpack to after so many packed bytes.
var Limit = (*Options).limit
