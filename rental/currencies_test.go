package rental_test

import (
	"encoding/json"
	"maps"
	"os"
	"testing"

	"motorpool/internal/require"
	"motorpool/rental"
)

// consoleCurrencies lists the decimals of the currencies that do not have two. For several,
// browsers have other decimals: those in which people write prices.
const consoleCurrencies = "../console/src/currencies.json"

// The console reads and writes amounts with the decimals that the service charges. With UPDATE=1
// the test writes the table.
func TestDigits_AreThoseOfTheConsole(t *testing.T) {
	want := map[string]int{}
	for i := range 26 * 26 * 26 {
		code := string([]byte{'A' + byte(i/676), 'A' + byte(i/26%26), 'A' + byte(i%26)})
		if c, err := rental.ParseCurrency(code); err == nil && c.Digits() != 2 {
			want[code] = c.Digits()
		}
	}
	if os.Getenv("UPDATE") == "1" {
		text, err := json.MarshalIndent(want, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(consoleCurrencies, append(text, '\n'), 0o600))
	}
	text, err := os.ReadFile(consoleCurrencies)
	require.NoError(t, err)
	var got map[string]int
	require.NoError(t, json.Unmarshal(text, &got))
	if !maps.Equal(got, want) {
		t.Errorf("%s has\n%v, want\n%v: run this test with UPDATE=1", consoleCurrencies, got, want)
	}
}
