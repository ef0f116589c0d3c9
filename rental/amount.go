package rental

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Minor is an amount of money in minor units of a currency that stands beside it: cents for EUR,
// yen for JPY, fils for BHD. Never negative, but in a difference.
type Minor int64

// MaxAmount bounds every amount, so that sums cannot overflow.
const MaxAmount Minor = 1_000_000_000_000

// Format writes an amount as a decimal number with all the currency's digits: 12.00.
func (c Currency) Format(m Minor) string {
	digits := c.Digits()
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	text := fmt.Sprintf("%0*d", digits+1, int64(m))
	if digits == 0 {
		return sign + text
	}
	return sign + text[:len(text)-digits] + "." + text[len(text)-digits:]
}

var (
	errAmountForm   = errors.New("must be a decimal number such as 12.50")
	errAmountDigits = errors.New("has more decimals than the currency")
	errAmountRange  = fmt.Errorf("must be at most %d minor units", int64(MaxAmount))
)

// Parse reads an amount that is written as a JSON number, exactly: 12, 12.5 and 12.50 are the same,
// 12.505 is an error for EUR. Exponents are taken: 1e2 is 100.
func (c Currency) Parse(text string) (Minor, error) {
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(text), "e")
	shift := 0
	if hasExponent {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil || shift > 30 || shift < -30 {
			return 0, errAmountForm
		}
	}
	sign, unsigned := strings.HasPrefix(mantissa, "-"), strings.TrimPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(unsigned, ".")
	digits := whole + fraction
	if whole == "" || strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, errAmountForm
	}
	shift += c.Digits() - len(fraction)
	digits = strings.TrimLeft(digits, "0")
	for ; shift < 0; shift++ {
		rest, zero := strings.CutSuffix(digits, "0")
		if digits != "" && !zero {
			return 0, errAmountDigits
		}
		digits = rest
	}
	if digits == "" {
		return 0, nil
	}
	m, err := strconv.ParseInt(digits+strings.Repeat("0", shift), 10, 64)
	if err != nil || Minor(m) > MaxAmount {
		return 0, errAmountRange
	}
	if sign {
		m = -m
	}
	return Minor(m), nil
}
