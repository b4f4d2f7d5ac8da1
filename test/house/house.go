// Package house holds the rules of the house against the code: which package
// may import which, that everything exported is explained, and the habits that
// docs and reviews would otherwise repeat for ever.
package house
