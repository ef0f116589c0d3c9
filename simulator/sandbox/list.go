package sandbox

// page answers a list, the newest first, from behind an object on.
func page[T any](r *request, url string, all []T, show func(T) (string, view)) (view, *failure) {
	const usual, most = 10, 100
	limit, after := r.params.whole("limit"), r.params.text("starting_after")
	if limit == 0 {
		limit = usual
	}
	if limit > most {
		r.params.fail(refused(parameterInvalid, "limit", "limit must be at most %d", most))
	}
	if f := r.params.check(); f != nil {
		return nil, f
	}
	data, more, begun := []view{}, false, after == ""
	for _, o := range all {
		id, v := show(o)
		switch {
		case !begun:
			begun = id == after
		case int64(len(data)) == limit:
			more = true
		default:
			data = append(data, v)
		}
	}
	if !begun {
		return nil, missingAt("starting_after", "object", after)
	}
	return view{"object": "list", "url": url, "has_more": more, "data": data}, nil
}
