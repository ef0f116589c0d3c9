package rentaltest

import (
	"testing"

	"motorpool/rental"
	"motorpool/telematics"
)

func TestCards_KeepTheContract(t *testing.T) {
	CardsContract(t, func(*testing.T) CardRecord {
		m := NewCards()
		return CardRecord{
			Here: m, There: m,
			Use:   func(_ *testing.T, method rental.Method) { m.Use(method.ID) },
			Lines: func(*testing.T) []telematics.Activity { return m.Lines() },
		}
	})
}
