package budget

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Amount is a sum of money in billionths of a US dollar, so that the price of a
// single token of a language model is a whole number.
type Amount int64

// USD is one US dollar.
const USD Amount = 1_000_000_000

// MaxAmount is the largest sum that is read or charged: a billion dollars. Sums of two do not overflow.
const MaxAmount = 1_000_000_000 * USD

// maxAmountText is the maximum length of a number, because a large exponent is slow to expand.
const maxAmountText = 32

// Dollars returns the amount in US dollars, rounded to a float64.
func (a Amount) Dollars() float64 { return float64(a) / float64(USD) }

// ParseAmount parses a decimal number of dollars in JSON syntax, such as 45.50 or 1e2, exactly. A
// number with more than nine decimals, below zero or above a billion dollars is an error.
func ParseAmount(text string) (Amount, error) {
	if len(text) > maxAmountText {
		return 0, errors.New("the amount has too many digits")
	}
	if strings.ContainsAny(text, "/_pPxXoObB") {
		return 0, fmt.Errorf("%q is not an amount in dollars", text)
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 && len(strings.TrimLeft(text[at+1:], "+-0")) > 2 {
		return 0, errors.New("the amount has too large an exponent")
	}
	dollars, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, fmt.Errorf("%q is not an amount in dollars", text)
	}
	parts := dollars.Mul(dollars, new(big.Rat).SetInt64(int64(USD)))
	switch {
	case parts.Sign() < 0:
		return 0, errors.New("the amount is below zero")
	case parts.Cmp(new(big.Rat).SetInt64(int64(MaxAmount))) > 0:
		return 0, errors.New("the amount is above a billion dollars")
	case !parts.IsInt():
		return 0, errors.New("the amount has more than nine decimals")
	}
	return Amount(parts.Num().Int64()), nil
}

// String returns the dollars as a decimal number without needless zeros: "45.5".
func (a Amount) String() string {
	sign, v := "", int64(a)
	if v < 0 {
		sign, v = "-", -v
	}
	text := fmt.Sprintf("%s%d.%09d", sign, v/int64(USD), v%int64(USD))
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON writes the dollars as a number.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON reads a number of dollars, as ParseAmount does.
func (a *Amount) UnmarshalJSON(raw []byte) (err error) {
	*a, err = ParseAmount(string(raw))
	return err
}
