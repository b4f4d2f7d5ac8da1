// Package house checks the code against the rules of the house: which package
// may import which, that everything exported is explained, and the habits that
// docs and reviews would otherwise repeat for ever.
package house
