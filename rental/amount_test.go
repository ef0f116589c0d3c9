package rental_test

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
)

// someCurrencies have 0, 2, 3 and 4 decimals.
var someCurrencies = []rental.Currency{"EUR", "USD", "JPY", "ISK", "UGX", "KRW", "BHD", "KWD", "TND", "CLF"}

func drawAmount(t *rapid.T, label string) rental.Minor {
	limit := rapid.SampledFrom([]int64{0, 1, 99, 1000, 1_000_000, int64(rental.MaxAmount)}).Draw(t, label+" up to")
	return rental.Minor(rapid.Int64Range(0, limit).Draw(t, label))
}

func TestParse_ReadsWhatFormatWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		currency := rapid.SampledFrom(someCurrencies).Draw(t, "currency")
		want := drawAmount(t, "amount")
		text := currency.Format(want)
		if !json.Valid([]byte(text)) {
			t.Errorf("%s is not JSON", text)
		}
		got, err := currency.Parse(text)
		if err != nil || got != want {
			t.Errorf("%s of %s was read as %d, %v; want %d", text, currency, got, err, want)
		}
	})
}

func TestFormat_NegativeAmountHasItsSign(t *testing.T) {
	for text, of := range map[string]string{
		"-0.01": rental.Currency("EUR").Format(-1), "-12": rental.Currency("JPY").Format(-12),
		"-1.005": rental.Currency("BHD").Format(-1005),
		"0.00":   rental.Currency("EUR").Format(0), "0": rental.Currency("JPY").Format(0), "0.000": rental.Currency("KWD").Format(0),
		"0.0007": rental.Currency("CLF").Format(7),
	} {
		if text != of {
			t.Errorf("formatted as %s, want %s", of, text)
		}
	}
}

// The amount that is read is exactly that of the text, computed in fractions; nothing is rounded.
func TestParse_IsExactOrRefuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		currency := rapid.SampledFrom(someCurrencies).Draw(t, "currency")
		text := rapid.StringMatching(`(0|[1-9][0-9]{0,14})(\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "text")
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%s is not a number", text)
		}
		minor := exact.Mul(exact, power(currency.Digits()))
		payable := minor.IsInt() && minor.Num().Cmp(big.NewInt(int64(rental.MaxAmount))) <= 0
		got, err := currency.Parse(text)
		if (err == nil) != payable {
			t.Errorf("%s %s, which are %s minor units: error %v", text, currency, err, minor.RatString())
		}
		if err == nil && minor.Num().Cmp(big.NewInt(int64(got))) != 0 {
			t.Errorf("%s of %s was read as %d, want %s", text, currency, got, minor.Num())
		}
	})
}

func power(digits int) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))
}

// Of the edges; see TestParse_IsExactOrRefuses for the rest.
func TestParse_Accepts(t *testing.T) {
	for _, c := range []struct {
		currency rental.Currency
		text     string
		want     rental.Minor
	}{
		{"EUR", "12.500", 1250}, {"EUR", "-0", 0}, {"EUR", "-0.00", 0}, {"EUR", "0e999999999999", 0}, {"EUR", "1E+2", 10_000},
		{"EUR", "10000000000", rental.MaxAmount}, {"EUR", "1e10", rental.MaxAmount}, {"EUR", "100000000000000000000e-10", rental.MaxAmount},
		{"JPY", "1000000000000", rental.MaxAmount}, {"UGX", "5000.00", 5000}, {"KWD", "1000000000", rental.MaxAmount},
	} {
		if got, err := c.currency.Parse(c.text); err != nil || got != c.want {
			t.Errorf("%s of %s was read as %d, %v; want %d", c.text, c.currency, got, err, c.want)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	const form, negative, exponent = "must be a decimal number such as 12.5", "must not be negative",
		"must be written with a smaller exponent"
	for _, c := range []struct {
		currency   rental.Currency
		text, says string
	}{
		{"EUR", "12.505", "must have at most 2 decimals"}, {"EUR", "0.001", "must have at most 2 decimals"},
		{"EUR", "1e-3", "must have at most 2 decimals"},
		{"JPY", "1.10", "must be a whole number: JPY has no decimals"}, {"JPY", "0.5", "must be a whole number: JPY has no decimals"},
		{"ISK", "1.1", "must be a whole number: ISK has no decimals"}, {"UGX", "1e-1", "must be a whole number: UGX has no decimals"},
		{"BHD", "1.0005", "must have at most 3 decimals"}, {"KWD", "0.0001", "must have at most 3 decimals"},
		{"EUR", "10000000000.01", "must be at most 10000000000.00"}, {"EUR", "1e11", "must be at most 10000000000.00"},
		{"EUR", "1e999", "must be at most 10000000000.00"},
		{"JPY", "1000000000001", "must be at most 1000000000000"}, {"EUR", strings.Repeat("9", 60_000), "must be at most 10000000000.00"},
		{"EUR", "0." + strings.Repeat("0", 60_000) + "1", "must have at most 2 decimals"},
		{"EUR", "-1", negative}, {"EUR", "-0.01", negative}, {"EUR", "-1e999999999999", negative}, {"EUR", "1e1001", exponent},
		{"EUR", "1e99999999999999999999", exponent},
		{"EUR", "", form}, {"EUR", " 1", form}, {"EUR", "1 ", form}, {"EUR", "1\n", form}, {"EUR", "+1", form}, {"EUR", "--1", form},
		{"EUR", "01", form}, {"EUR", ".5", form}, {"EUR", "5.", form}, {"EUR", "1,5", form},
		{"EUR", "1_000", form}, {"EUR", "0x10", form}, {"EUR", "1e", form}, {"EUR", "1e1.5", form}, {"EUR", "e5", form},
		{"EUR", "NaN", form}, {"EUR", "Infinity", form}, {"EUR", "null", form},
		{"EUR", `"1"`, form}, {"EUR", "١", form}, {"EUR", "1.2.3", form}, {"EUR", "-", form}, {"EUR", "\x00", form},
	} {
		if got, err := c.currency.Parse(c.text); err == nil || err.Error() != c.says || got != 0 {
			t.Errorf("%.40s of %s was read as %d: %v; want %s", c.text, c.currency, got, err, c.says)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"12.50", "1e2", "-0", "0e9", "1e-3", "99999999999999999999", "1.0000000000000000000", "+1", "0x1p4", "1_0",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, currency := range someCurrencies {
			m, err := currency.Parse(text)
			if err != nil {
				assert.Equal(t, m, 0, "%q of %s: the error came with the amount", text, currency)
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

func TestParseTaxPercent_IsExact(t *testing.T) {
	for text, want := range map[string]rental.TaxRate{
		"0": 0, "19": 190_000, "7.7": 77_000, "8.875": 88_750, "0.0001": 1, "100": rental.FullTax, "1.9e1": 190_000, "19.00000": 190_000,
	} {
		if got, err := rental.ParseTaxPercent(text); err != nil || got != want {
			t.Errorf("%s %% was read as %d, %v; want %d", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"100.0001": "must be at most 100", "19.00001": "must have at most 4 decimals", "-1": "must not be negative",
		"19%": "must be a decimal number such as 12.5",
	} {
		if got, err := rental.ParseTaxPercent(text); err == nil || err.Error() != says {
			t.Errorf("%s %% was read as %d, %v; want %s", text, got, err, says)
		}
	}
}

// oddDigits lists the currencies whose minor unit is not a hundredth, of ISO 4217:2015, list one
// (current currency and funds), as its maintenance agency SIX publishes it (list-one.xml, column
// "minor unit"); without UYI and UYW, which are units of account.
var oddDigits = map[rental.Currency]int{
	"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0, "UGX": 0,
	"VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
	"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
	"CLF": 4,
}

func TestDigits_AreThoseOfISO4217(t *testing.T) {
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
		t.Errorf("%d currencies are known, want 150 to 180", len(known))
	}
}

func TestParseCurrency_RefusesOtherCodes(t *testing.T) {
	for _, code := range []string{
		"", "eur", "Eur", "EU", "EURO", "EUR ", "ZZZ", "XXX", "XTS", "XAU", "XAG", "XDR", "GGP", "€", "978", "\x00",
	} {
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

// moneyFiles are the files that handle money: all of rental and its adapter, and the files of the
// store and the interface that are named for it.
var moneyFiles = []string{
	"*.go", "stripe/*.go", "charging/*.go", "wallet/*.go",
	"../store/rentals/*.go",
	"../httpapi/booking*.go", "../httpapi/*_booking*.go", "../httpapi/amount*.go", "../httpapi/money*.go",
	"../httpapi/payment*.go", "../httpapi/charge*.go", "../httpapi/tariff*.go",
}

// moneyReaders match the functions that read money in packages of much else.
var moneyReaders = map[string]string{
	"../store/vehicles/*.go": `amount|tax|exact|currency|terms|rate|RateOf`,
}

var (
	commentOrText = regexp.MustCompile("\"(\\\\.|[^\"\\\\])*\"|`[^`]*`|'[^']*'|//.*")
	// Ids, where 42.0 equals 42, places on Earth, and the bounds of integers.
	noMoney = regexp.MustCompile(
		`(?s)func wholeNumber\(.*?\n}|(?i:\b(lat|lng|lon|latitude|longitude)\b[ ,]*)+float64|math\.(Max|Min)(Int|Uint)\d*`,
	)
	// Types, conversions and functions of any library, literals, and the hours of a duration.
	floating = regexp.MustCompile(`\w*(?i:float)\w*|\bcomplex(64|128)?\b|\b\d+(\.\d+|e\d+)|\bmath\.\w+|\.(Hours|AsMajorUnits)\(`)
)

// floats returns what of a piece of a program uses floating point.
func floats(program string) []string {
	return floating.FindAllString(noMoney.ReplaceAllString(commentOrText.ReplaceAllString(program, ""), ""), -1)
}

func TestMoney_UsesNoFloatingPoint(t *testing.T) {
	seen := 0
	check := func(pattern string, pick func(program string) []string) (picked int) {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			seen++
			program, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, piece := range pick(string(program)) {
				picked++
				for _, found := range floats(piece) {
					t.Errorf("%s uses floating point: %s", path, found)
				}
			}
		}
		return picked
	}
	for _, pattern := range moneyFiles {
		check(pattern, func(program string) []string { return []string{program} })
	}
	for pattern, names := range moneyReaders {
		function := regexp.MustCompile(`(?ms)^func (\([^)]*\) )?(` + names + `)(\[[^\]]*\])?\(.*?^}`)
		picked := check(pattern, func(program string) []string { return function.FindAllString(program, -1) })
		if want := strings.Count(names, "|") + 1; picked != want {
			t.Errorf("%s has %d functions %s, want %d", pattern, picked, names, want)
		}
	}
	if seen < 20 {
		t.Errorf("only %d files were checked, want at least 20", seen)
	}
}

func TestFloats_FindsFloatingPoint(t *testing.T) {
	for text, want := range map[string]int{
		"var x float64": 1, "type t struct{ Amount float32 }": 1, "type t struct{ Latitude, Longitude float64 }": 0,
		"type t struct{ Latitude, Amount float64 }": 1, "var x = 1.5": 1, "var x = 1e2": 1, "func f(n int) { _ = float64(n) }": 1,
		"func f(r *big.Rat) { r.Float64() }": 1, "func f(s string) { strconv.ParseFloat(s, 64) }": 1,
		"func f(d time.Duration) { _ = d.Hours() }": 1,
		"func f(p Price) { _ = p.Hours }":           0, "var x = 100": 0, "var x = math.Round(y)": 1, "var x = math.MaxInt64": 0,
		"func wholeNumber(n int) {\n\t_ = float64(n)\n}": 0, "var x complex128": 1, "func f(d time.Duration) { g(1, d.Hours()) }": 1,
	} {
		if found := floats(text); len(found) != want {
			t.Errorf("%s: found %v, want %d places", text, found, want)
		}
	}
}
