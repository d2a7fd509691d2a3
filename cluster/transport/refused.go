package transport

// RefusedError is a node's refusal of a control request.
type RefusedError struct {
	Status int    // of HTTP
	Reason string // one line
}

func (e *RefusedError) Error() string { return e.Reason }
