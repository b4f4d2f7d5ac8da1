package clusterlog

// Stored returns the hashes of the tree in the database.
var Stored = stored
