package rental_test

import (
	"testing"
	"time"

	"motorpool/rental"
)

func TestAPriceIsRoundedOnceEach(t *testing.T) {
	start := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	tariff := rental.Tariff{Currency: "EUR", HourlyRate: 1500, Tax: 100_000, Deposit: 20_000}
	p, err := tariff.Over(start, start.Add(8*time.Hour))
	if err != nil || p.Hours != 800 || p.Subtotal != 12_000 || p.TaxDue != 1_200 || p.Total() != 33_200 {
		t.Errorf("8 hours: %+v %v", p, err)
	}
}
