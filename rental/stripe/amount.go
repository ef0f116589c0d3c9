package stripe

import (
	"strings"

	"motorpool/rental"
)

// Stripe counts in its own units (https://docs.stripe.com/currencies: "Minor units in API amounts",
// "Zero-decimal currencies", "Three-decimal currencies", "Special cases"; read 2026-11-21). What is
// not in a list has two decimals.

// zeroDecimal are the currencies whose amounts are whole numbers there. MGA has decimals elsewhere
// (ISO 4217).
var zeroDecimal = set("BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF")

// threeDecimal are the currencies with three decimals, of which the last must be 0.
var threeDecimal = set("BHD", "JOD", "KWD", "OMR", "TND")

// ISK and UGX have no decimals any more, and are written with two there, for old times' sake: 5 ISK
// are 500. They are in no list.

func set(codes ...rental.Currency) map[rental.Currency]bool {
	s := map[rental.Currency]bool{}
	for _, code := range codes {
		s[code] = true
	}
	return s
}

// digitsThere is how many decimals an amount has at Stripe.
func digitsThere(c rental.Currency) int {
	switch {
	case zeroDecimal[c]:
		return 0
	case threeDecimal[c]:
		return 3
	}
	return 2
}

// amountThere converts an amount for a request. An amount that cannot be charged exactly is rounded
// half up: to two decimals where there are three, to none where there are none.
func amountThere(m rental.Minor, c rental.Currency) int64 {
	there := shift(int64(m), digitsThere(c)-c.Digits())
	if threeDecimal[c] {
		there = shift(shift(there, -1), 1)
	}
	return there
}

// amountBack converts an amount to give back. An amount that cannot be given back exactly is
// rounded down: parts that are rounded up, each for itself, would be more than was paid.
func amountBack(m rental.Minor, c rental.Currency) int64 {
	there := amountThere(m, c)
	for there > 0 && amountHere(there, string(c)) > m {
		there -= step(c)
	}
	return there
}

// step is between two amounts that can be charged.
func step(c rental.Currency) int64 {
	if threeDecimal[c] {
		return 10
	}
	return 1
}

// amountHere converts an amount of an answer. One of a currency that we do not know stays as it is.
func amountHere(amount int64, code string) rental.Minor {
	c, err := rental.ParseCurrency(strings.ToUpper(code))
	if err != nil {
		return rental.Minor(amount)
	}
	return rental.Minor(shift(amount, c.Digits()-digitsThere(c)))
}

// shift moves the decimal point of what is not negative to the right, or to the left and rounds
// half up.
func shift(n int64, places int) int64 {
	for ; places > 0; places-- {
		n *= 10
	}
	by := int64(1)
	for ; places < 0; places++ {
		by *= 10
	}
	return (n + by/2) / by
}
