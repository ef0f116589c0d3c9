package rental

import (
	"errors"
	"fmt"
)

// TaxRate is a share in millionths: 190000 is 19 %.
type TaxRate int64

// FullTax is 100 %.
const FullTax TaxRate = 1_000_000

// percentDigits is how many decimals a percentage has at most.
const percentDigits = 4

// ParseTaxPercent reads a percentage that is written as a JSON number, exactly: 19, or 7.7. An error goes on from the
// name of what was read.
func ParseTaxPercent(text string) (TaxRate, error) {
	n, err := parseDecimal(text, percentDigits, int64(FullTax))
	switch {
	case errors.Is(err, errDecimals):
		return 0, fmt.Errorf("must have at most %d decimals", percentDigits)
	case errors.Is(err, errRange):
		return 0, errors.New("must be at most 100")
	}
	return TaxRate(n), err
}
