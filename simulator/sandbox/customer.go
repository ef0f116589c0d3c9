package sandbox

// customer is who pays.
type customer struct {
	object
	Description string `json:"description"`
}

func (c *customer) view() view {
	v := c.object.view("customer")
	v["description"] = orNull(c.Description)
	return v
}

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
