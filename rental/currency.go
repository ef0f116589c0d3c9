package rental

import (
	"fmt"

	"github.com/Rhymond/go-money"
)

// Currency is an ISO 4217 code, such as EUR.
type Currency string

// DefaultCurrency is that of an agency that names none.
const DefaultCurrency Currency = "EUR"

// ParseCurrency returns the currency with a code, in capitals.
func ParseCurrency(code string) (Currency, error) {
	known := money.GetCurrency(code)
	if known == nil || known.Code != code || known.NumericCode == "" || noMoney[code] {
		return "", fmt.Errorf("currency %.10q: want an ISO 4217 code such as EUR", code)
	}
	return Currency(code), nil
}

// noMoney has codes of the standard for which it gives no minor unit: they are no means of payment.
var noMoney = map[string]bool{"XAG": true, "XAU": true, "XDR": true}

// Digits is how many decimals an amount has: 2 for EUR, 0 for JPY, 3 for BHD. It panics for what ParseCurrency
// never returned: an amount without a known currency must not be shown or charged.
func (c Currency) Digits() int {
	known := money.GetCurrency(string(c))
	if known == nil {
		panic(fmt.Sprintf("rental: currency %q was not parsed", string(c)))
	}
	return known.Fraction
}
