package rental_test

import (
	"testing"

	"motorpool/rental"
)

// oddDigits are the currencies whose minor unit is not a hundredth: ISO 4217:2015, list one (current currency and
// funds), as its maintenance agency SIX publishes it (list-one.xml, column "minor unit"), but for UYI and UYW, which are
// units of account.
var oddDigits = map[rental.Currency]int{
	"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0, "UGX": 0,
	"VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
	"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
	"CLF": 4,
}

func TestTheDigitsOfEveryCurrencyAreThoseOfTheStandard(t *testing.T) {
	known := map[rental.Currency]bool{}
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			for c := 'A'; c <= 'Z'; c++ {
				currency, err := rental.ParseCurrency(string([]rune{a, b, c}))
				if err != nil {
					continue
				}
				known[currency] = true
				want, odd := oddDigits[currency]
				if !odd {
					want = 2
				}
				if got := currency.Digits(); got != want {
					t.Errorf("%s has %d digits, want %d", currency, got, want)
				}
			}
		}
	}
	for currency := range oddDigits {
		if !known[currency] {
			t.Errorf("%s is not known", currency)
		}
	}
	for _, currency := range []rental.Currency{"EUR", "USD", "GBP", "CHF", "PLN", "CZK", "SEK", "MGA", "MRU", "HUF", "IDR"} {
		if !known[currency] {
			t.Errorf("%s is not known", currency)
		}
	}
	if len(known) < 150 || len(known) > 180 {
		t.Errorf("%d currencies", len(known))
	}
}

func TestWhatIsNoCurrencyIsRefused(t *testing.T) {
	for _, code := range []string{"", "eur", "Eur", "EU", "EURO", "EUR ", "ZZZ", "XXX", "XTS", "XAU", "XAG", "XDR", "GGP", "€", "978", "\x00"} {
		if currency, err := rental.ParseCurrency(code); err == nil || currency != "" {
			t.Errorf("%q was read as %q", code, currency)
		}
	}
}

func TestFormat_PanicsWithoutACurrency(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an amount without a currency was formatted")
		}
	}()
	t.Log(rental.Currency("").Format(1))
}
