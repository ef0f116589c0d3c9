package sandbox

// customer is who pays.
type customer struct {
	object
	Description string `json:"description"`
	Default     string `json:"default_payment_method"`
}

func (c *customer) view() view {
	v := c.object.view("customer")
	v["description"] = orNull(c.Description)
	v["invoice_settings"] = view{"default_payment_method": orNull(c.Default)}
	return v
}

const defaultMethod = "default_payment_method"

func createCustomer(l *ledger, r *request) (view, *failure) {
	description, metadata := r.params.text("description"), r.params.object("metadata")
	if f := r.params.check(); f != nil {
		return nil, f
	}
	c := &customer{object: l.newObject("cus", metadata), Description: description}
	l.Customers[c.ID] = c
	l.addEvent("customer.created", c.view())
	return c.view(), nil
}

func getCustomer(l *ledger, r *request) (view, *failure) {
	c := l.Customers[r.id]
	if f := r.params.check(); f != nil || c == nil {
		return nil, firstOf(f, missing("customer", r.id))
	}
	return c.view(), nil
}

func updateCustomer(l *ledger, r *request) (view, *failure) {
	settings, metadata := r.params.object("invoice_settings"), r.params.object("metadata")
	described, description := r.params.has("description"), r.params.text("description")
	c := l.Customers[r.id]
	if f := r.params.check(); f != nil || c == nil {
		return nil, firstOf(f, missing("customer", r.id))
	}
	token, named := settings[defaultMethod]
	if m := l.Methods[token]; token != "" && (m == nil || m.Customer != c.ID) {
		return nil, missingAt("invoice_settings["+defaultMethod+"]", "PaymentMethod", token)
	}
	if named {
		c.Default = token
	}
	if described {
		c.Description = description
	}
	for name, value := range metadata {
		if c.Metadata == nil {
			c.Metadata = map[string]string{}
		}
		c.Metadata[name] = value
	}
	l.addEvent("customer.updated", c.view())
	return c.view(), nil
}

// firstOf returns the error of the parameters, which comes before any other.
func firstOf(wrong, otherwise *failure) *failure {
	if wrong != nil {
		return wrong
	}
	return otherwise
}
