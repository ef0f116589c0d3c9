package rental_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"motorpool/rental"
)

// someCurrencies have 0, 2, 3 and 4 decimals.
var someCurrencies = []rental.Currency{"EUR", "USD", "JPY", "ISK", "UGX", "KRW", "BHD", "KWD", "TND", "CLF"}

func drawAmount(t *rapid.T, label string) rental.Minor {
	limit := rapid.SampledFrom([]int64{0, 1, 99, 1000, 1_000_000, int64(rental.MaxAmount)}).Draw(t, label+" up to")
	return rental.Minor(rapid.Int64Range(0, limit).Draw(t, label))
}

func TestAnAmountIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		currency := rapid.SampledFrom(someCurrencies).Draw(t, "currency")
		want := drawAmount(t, "amount")
		text := currency.Format(want)
		if !json.Valid([]byte(text)) {
			t.Errorf("%s is no JSON", text)
		}
		got, err := currency.Parse(text)
		if err != nil || got != want {
			t.Errorf("%s of %s was read as %d, %v; want %d", text, currency, got, err, want)
		}
	})
}

func TestADifferenceIsWrittenWithItsSign(t *testing.T) {
	for text, of := range map[string]string{
		"-0.01": rental.Currency("EUR").Format(-1), "-12": rental.Currency("JPY").Format(-12), "-1.005": rental.Currency("BHD").Format(-1005),
		"0.00": rental.Currency("EUR").Format(0), "0": rental.Currency("JPY").Format(0), "0.000": rental.Currency("KWD").Format(0), "0.0007": rental.Currency("CLF").Format(7),
	} {
		if text != of {
			t.Errorf("%s, want %s", of, text)
		}
	}
}

// What is read is what the text says, as arithmetic of fractions has it; nothing is ever rounded.
func TestAnAmountIsExactOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		currency := rapid.SampledFrom(someCurrencies).Draw(t, "currency")
		text := rapid.StringMatching(`(0|[1-9][0-9]{0,14})(\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "text")
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%s is no number", text)
		}
		minor := exact.Mul(exact, power(currency.Digits()))
		payable := minor.IsInt() && minor.Num().Cmp(big.NewInt(int64(rental.MaxAmount))) <= 0
		got, err := currency.Parse(text)
		if (err == nil) != payable {
			t.Errorf("%s of %s: %v; %s minor units", text, currency, err, minor.RatString())
		}
		if err == nil && minor.Num().Cmp(big.NewInt(int64(got))) != 0 {
			t.Errorf("%s of %s was read as %d, want %s", text, currency, got, minor.Num())
		}
	})
}

func power(digits int) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))
}

func TestAmountsThatCanBeRead(t *testing.T) {
	for _, c := range []struct {
		currency rental.Currency
		text     string
		want     rental.Minor
	}{
		{"EUR", "12", 1200}, {"EUR", "12.5", 1250}, {"EUR", "12.50", 1250}, {"EUR", "12.500", 1250}, {"EUR", "0.01", 1}, {"EUR", "0", 0}, {"EUR", "-0", 0},
		{"EUR", "-0.00", 0}, {"EUR", "0e999999999999", 0}, {"EUR", "1e2", 10_000}, {"EUR", "1E+2", 10_000}, {"EUR", "125e-1", 1250}, {"EUR", "1.25e1", 1250}, {"EUR", "1e-2", 1},
		{"EUR", "10000000000", rental.MaxAmount}, {"EUR", "1e10", rental.MaxAmount}, {"EUR", "100000000000000000000e-10", rental.MaxAmount},
		{"JPY", "1", 1}, {"JPY", "1.0", 1}, {"JPY", "1.000", 1}, {"JPY", "1.1e1", 11}, {"JPY", "1000000000000", rental.MaxAmount},
		{"ISK", "150", 150}, {"UGX", "5000.00", 5000}, {"BHD", "1.005", 1005}, {"BHD", "1.10", 1100}, {"KWD", "0.001", 1}, {"KWD", "1000000000", rental.MaxAmount},
	} {
		if got, err := c.currency.Parse(c.text); err != nil || got != c.want {
			t.Errorf("%s of %s was read as %d, %v; want %d", c.text, c.currency, got, err, c.want)
		}
	}
}

func TestAmountsThatCannotBeRead(t *testing.T) {
	const form, negative, exponent = "must be a decimal number such as 12.5", "must not be negative", "must be written with a smaller exponent"
	for _, c := range []struct {
		currency   rental.Currency
		text, says string
	}{
		{"EUR", "12.505", "must have at most 2 decimals"}, {"EUR", "0.001", "must have at most 2 decimals"}, {"EUR", "1e-3", "must have at most 2 decimals"},
		{"JPY", "1.10", "must be a whole number: JPY has no decimals"}, {"JPY", "0.5", "must be a whole number: JPY has no decimals"},
		{"ISK", "1.1", "must be a whole number: ISK has no decimals"}, {"UGX", "1e-1", "must be a whole number: UGX has no decimals"},
		{"BHD", "1.0005", "must have at most 3 decimals"}, {"KWD", "0.0001", "must have at most 3 decimals"},
		{"EUR", "10000000000.01", "must be at most 10000000000.00"}, {"EUR", "1e11", "must be at most 10000000000.00"}, {"EUR", "1e999", "must be at most 10000000000.00"},
		{"JPY", "1000000000001", "must be at most 1000000000000"}, {"EUR", strings.Repeat("9", 60_000), "must be at most 10000000000.00"},
		{"EUR", "0." + strings.Repeat("0", 60_000) + "1", "must have at most 2 decimals"},
		{"EUR", "-1", negative}, {"EUR", "-0.01", negative}, {"EUR", "-1e999999999999", negative}, {"EUR", "1e1001", exponent}, {"EUR", "1e99999999999999999999", exponent},
		{"EUR", "", form}, {"EUR", " 1", form}, {"EUR", "1 ", form}, {"EUR", "1\n", form}, {"EUR", "+1", form}, {"EUR", "--1", form}, {"EUR", "01", form}, {"EUR", ".5", form}, {"EUR", "5.", form}, {"EUR", "1,5", form},
		{"EUR", "1_000", form}, {"EUR", "0x10", form}, {"EUR", "1e", form}, {"EUR", "1e1.5", form}, {"EUR", "e5", form}, {"EUR", "NaN", form}, {"EUR", "Infinity", form}, {"EUR", "null", form},
		{"EUR", `"1"`, form}, {"EUR", "١", form}, {"EUR", "1.2.3", form}, {"EUR", "-", form}, {"EUR", "\x00", form},
	} {
		if got, err := c.currency.Parse(c.text); err == nil || err.Error() != c.says || got != 0 {
			t.Errorf("%.40s of %s was read as %d: %v; want %s", c.text, c.currency, got, err, c.says)
		}
	}
}

func FuzzAnAmount(f *testing.F) {
	for _, text := range []string{"12.50", "1e2", "-0", "0e9", "1e-3", "99999999999999999999", "1.0000000000000000000", "+1", "0x1p4", "1_0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, currency := range someCurrencies {
			m, err := currency.Parse(text)
			if err != nil {
				if m != 0 {
					t.Errorf("%q of %s: %d with an error", text, currency, m)
				}
				continue
			}
			if m < 0 || m > rental.MaxAmount || !json.Valid([]byte(text)) {
				t.Errorf("%q of %s was read as %d", text, currency, m)
			}
			if again, err := currency.Parse(currency.Format(m)); err != nil || again != m {
				t.Errorf("%q of %s was read as %d, and then as %d, %v", text, currency, m, again, err)
			}
		}
	})
}

func TestATaxIsReadExactly(t *testing.T) {
	for text, want := range map[string]rental.TaxRate{"0": 0, "19": 190_000, "7.7": 77_000, "8.875": 88_750, "0.0001": 1, "100": rental.FullTax, "1.9e1": 190_000, "19.00000": 190_000} {
		if got, err := rental.ParseTaxPercent(text); err != nil || got != want {
			t.Errorf("%s %% was read as %d, %v; want %d", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"100.0001": "must be at most 100", "19.00001": "must have at most 4 decimals", "-1": "must not be negative", "19%": "must be a decimal number such as 12.5",
	} {
		if got, err := rental.ParseTaxPercent(text); err == nil || err.Error() != says {
			t.Errorf("%s was read as %d: %v; want %s", text, got, err, says)
		}
	}
}
