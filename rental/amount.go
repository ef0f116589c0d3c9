package rental

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/Rhymond/go-money"
)

// Minor is an amount of money in minor units of the currency next to it: cents for EUR,
// yen for JPY, fils for BHD. Only a difference may be negative.
type Minor int64

// MaxAmount bounds every amount, so that sums cannot overflow.
const MaxAmount Minor = 1_000_000_000_000

// Format returns an amount as a decimal number with all the currency's digits: 12.00.
func (c Currency) Format(m Minor) string {
	digits, sign := c.Digits(), ""
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
	errAmountForm     = errors.New("must be a decimal number such as 12.5")
	errAmountNegative = errors.New("must not be negative")
	errAmountExponent = errors.New("must be written with a smaller exponent")
)

// jsonNumber is a number as JSON writes it: sign, whole, fraction, exponent.
var jsonNumber = regexp.MustCompile(`^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$`)

// Parse reads an amount that is written as a JSON number, exactly: 12.5 and 12.50 are the same, and
// 12.505 is an error for EUR. Exponents are accepted: 1e2 is 100. The text of an error completes a
// sentence that begins with the name of the field: must be …
func (c Currency) Parse(text string) (Minor, error) {
	n, err := parseDecimal(text, c.Digits(), int64(MaxAmount))
	switch {
	case errors.Is(err, errDecimals):
		return 0, c.tooFine()
	case errors.Is(err, errRange):
		return 0, fmt.Errorf("must be at most %s", c.Format(MaxAmount))
	}
	return Minor(n), err
}

func (c Currency) tooFine() error {
	if c.Digits() == 0 {
		return fmt.Errorf("must be a whole number: %s has no decimals", c)
	}
	return fmt.Errorf("must have at most %d decimals", c.Digits())
}

var (
	errDecimals = errors.New("has too many decimals")
	errRange    = errors.New("is out of range")
)

// parseDecimal reads a JSON number, exactly, in units of ten to the power of -digits.
func parseDecimal(text string, digits int, limit int64) (int64, error) {
	parts := jsonNumber.FindStringSubmatch(text)
	if parts == nil {
		return 0, errAmountForm
	}
	sign, fraction := parts[1], parts[3]
	significant := strings.TrimLeft(parts[2]+fraction, "0")
	if significant == "" {
		return 0, nil // whatever its sign, and its exponent
	}
	if sign != "" {
		return 0, errAmountNegative
	}
	shift := digits - len(fraction)
	if parts[4] != "" {
		exponent, err := strconv.Atoi(parts[4])
		if err != nil || exponent < -maxExponent || exponent > maxExponent {
			return 0, errAmountExponent
		}
		shift += exponent
	}
	whole := strings.TrimRight(significant, "0")
	if shift += len(significant) - len(whole); shift < 0 {
		return 0, errDecimals
	}
	n, err := strconv.ParseInt(whole+strings.Repeat("0", shift), 10, 64)
	if err != nil || n > limit {
		return 0, errRange
	}
	return n, nil
}

const maxExponent = 1000

// Currency is an ISO 4217 code, such as EUR.
type Currency string

// DefaultCurrency is the currency of an agency that names none.
const DefaultCurrency Currency = "EUR"

// ParseCurrency returns the currency with an ISO 4217 code, in capitals, or an error.
func ParseCurrency(code string) (Currency, error) {
	known := money.GetCurrency(code)
	if known == nil || known.Code != code || known.NumericCode == "" || noMoney[code] {
		return "", fmt.Errorf("currency %.10q: want an ISO 4217 code such as EUR", code)
	}
	return Currency(code), nil
}

// noMoney are the codes without a minor unit in the standard: they are not used for payments.
var noMoney = map[string]bool{"XAG": true, "XAU": true, "XDR": true}

// Digits returns how many decimals an amount has: 2 for EUR, 0 for JPY, 3 for BHD. It panics for an
// unknown currency, which ParseCurrency never returns: its amounts must not be shown or charged.
func (c Currency) Digits() int {
	known := money.GetCurrency(string(c))
	if known == nil {
		panic(fmt.Sprintf("rental: currency %q was not parsed", string(c)))
	}
	return known.Fraction
}

// TaxRate is a share in millionths: 190000 is 19 %.
type TaxRate int64

// FullTax is 100 %.
const FullTax TaxRate = 1_000_000

// percentDigits is how many decimals a percentage has at most.
const percentDigits = 4

// ParseTaxPercent reads a percentage that is written as a JSON number, exactly: 19, or 7.7. The
// text of an error completes a sentence that begins with the name of the field.
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
