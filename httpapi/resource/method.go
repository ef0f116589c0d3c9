package resource

import "motorpool/rental"

// ChosenMethod is the answer to setting a default.
type ChosenMethod struct {
	ID       rental.MethodID `json:"id"`
	Type     string          `json:"type"`
	Brand    string          `json:"brand"`
	LastFour string          `json:"last_four"`
	Default  bool            `json:"is_default"`
}

// Method is a payment method.
type Method struct {
	ChosenMethod
	ExpMonth int    `json:"exp_month"`
	ExpYear  int    `json:"exp_year"`
	Created  string `json:"created_at"`
}

// card is the only type of payment method.
const card = "card"

// NewChosenMethod returns a payment method that was made the default.
func NewChosenMethod(m rental.Method) ChosenMethod {
	return ChosenMethod{ID: m.ID, Type: card, Brand: m.Brand, LastFour: m.LastFour, Default: m.Default}
}

// NewMethod returns a payment method.
func NewMethod(m rental.Method) Method {
	return Method{ChosenMethod: NewChosenMethod(m), ExpMonth: m.ExpMonth, ExpYear: m.ExpYear, Created: Timestamp(m.Created)}
}

// Client is a client of an agency, by the subject of its token.
type Client struct {
	AgencyID int64  `json:"agency_id"`
	Client   string `json:"client"`
}

// NewClient returns a client.
func NewClient(c rental.Client) Client { return Client{int64(c.Agency), c.Subject} }
