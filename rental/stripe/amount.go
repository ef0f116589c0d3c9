package stripe

import (
	"strings"

	"motorpool/rental"
)

// Stripe's units differ from ISO 4217 (https://docs.stripe.com/currencies: "Minor units in API
// amounts", "Zero-decimal currencies", "Three-decimal currencies", "Special cases"; read
// 2026-11-21). A currency in no list has two decimals.

// zeroDecimal are the currencies without decimals at Stripe. In ISO 4217, MGA has decimals.
var zeroDecimal = set("BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF")

// threeDecimal are the currencies with three decimals; the last digit must be 0.
var threeDecimal = set("BHD", "JOD", "KWD", "OMR", "TND")

// ISK and UGX no longer have decimals, but two at Stripe, for compatibility: 5 ISK are 500. So they
// are in no list.

func set(codes ...rental.Currency) map[rental.Currency]bool {
	s := map[rental.Currency]bool{}
	for _, code := range codes {
		s[code] = true
	}
	return s
}

// digitsThere returns how many decimals an amount has at Stripe.
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
// half up: to two decimals for a currency with three, to none for one without; but to no less than
// can be charged, since Stripe takes 0 for a mistake.
func amountThere(m rental.Minor, c rental.Currency) int64 {
	there := shift(int64(m), digitsThere(c)-c.Digits())
	if threeDecimal[c] {
		there = shift(shift(there, -1), 1)
	}
	if m > 0 {
		there = max(there, step(c))
	}
	return there
}

// amountBack converts an amount to refund. An amount that cannot be refunded exactly is rounded
// down: several parts, each rounded up, could exceed the payment.
func amountBack(m rental.Minor, c rental.Currency) int64 {
	there := amountThere(m, c)
	for amountHere(there, string(c)) > m {
		there -= step(c)
	}
	return there
}

// step returns the difference between two chargeable amounts, in Stripe's units.
func step(c rental.Currency) int64 {
	if threeDecimal[c] {
		return 10
	}
	return 1
}

// amountHere converts an amount of a response. In an unknown currency it is unchanged.
func amountHere(amount int64, code string) rental.Minor {
	c, err := rental.ParseCurrency(strings.ToUpper(code))
	if err != nil {
		return rental.Minor(amount)
	}
	return rental.Minor(shift(amount, c.Digits()-digitsThere(c)))
}

// shift multiplies a number that is not negative by ten to the power of places; if places is
// negative, it rounds half up.
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
