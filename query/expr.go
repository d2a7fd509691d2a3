package query

// Expr is an expression of a query as planners see it. Each method reports whether the expression is of its
// form.
type Expr struct{ n node }

// OrderItem is an item of ORDER BY.
type OrderItem struct {
	Expr Expr
	Desc bool
}

// Conditions returns the conditions that WHERE joins by AND, without those that are always true.
func (q *Query) Conditions() (list []Expr) {
	for _, c := range q.conjuncts {
		list = append(list, Expr{c.node})
	}
	return list
}

// OrderBy returns the items of ORDER BY.
func (q *Query) OrderBy() (items []OrderItem) {
	for _, by := range q.orderBy {
		items = append(items, OrderItem{Expr{by.expr}, by.desc})
	}
	return items
}

func exprsOf(nodes []node) (list []Expr) {
	for _, n := range nodes {
		list = append(list, Expr{n})
	}
	return list
}

// Constant returns the value of a constant.
func (x Expr) Constant() (v Value, ok bool) {
	if l, ok := x.n.(*literal); ok {
		return l.value, true
	}
	return Value{}, false
}

// Names returns the names of a path of members, without indexes of elements.
func (x Expr) Names() (names []string, ok bool) {
	ref, isPath := x.n.(*pathRef)
	if !isPath || len(ref.path) == 0 {
		return nil, false
	}
	for _, s := range ref.path {
		if s.index >= 0 {
			return nil, false
		}
		names = append(names, s.name)
	}
	return names, true
}

// IsPseudo reports whether a member at the root is the server's.
func IsPseudo(name string) bool { return pseudoMembers[name] != stored }

// comparisons are the operators of [Expr.Comparison].
var comparisons = map[operator]string{equal: "=", notEqual: "!=", less: "<", lessOrEqual: "<=", greater: ">", greaterOrEqual: ">="}

// Comparison returns a comparison: =, !=, <, <=, > or >=. A constant is on the right.
func (x Expr) Comparison() (left Expr, op string, right Expr, ok bool) {
	c, ok := x.n.(*comparison)
	if !ok {
		return left, "", right, false
	}
	if _, isLiteral := c.left.(*literal); isLiteral {
		return Expr{c.right}, comparisons[c.op.mirrored()], Expr{c.left}, true
	}
	return Expr{c.left}, comparisons[c.op], Expr{c.right}, true
}

// mirrored returns the operator with its sides exchanged.
func (op operator) mirrored() operator {
	switch op {
	case less:
		return greater
	case lessOrEqual:
		return greaterOrEqual
	case greater:
		return less
	case greaterOrEqual:
		return lessOrEqual
	}
	return op
}

// Between returns a BETWEEN.
func (x Expr) Between() (term, low, high Expr, ok bool) {
	b, ok := x.n.(*between)
	if !ok {
		return term, low, high, false
	}
	return Expr{b.term}, Expr{b.low}, Expr{b.high}, true
}

// In returns an IN of constants.
func (x Expr) In() (term Expr, values []Value, ok bool) {
	n, ok := x.n.(*in)
	if !ok || n.set == nil {
		return term, nil, false
	}
	for _, value := range n.values {
		values = append(values, value.(*literal).value)
	}
	return Expr{n.term}, values, true
}

// Logical returns the terms of AND, or of OR.
func (x Expr) Logical() (terms []Expr, or, ok bool) {
	l, ok := x.n.(*logical)
	if !ok {
		return nil, false, false
	}
	return exprsOf(l.terms), l.or, true
}

// Like returns a LIKE with a constant pattern: what all strings that match begin with, whether they are
// exactly that, and whether that is all that the pattern says.
func (x Expr) Like() (term Expr, prefix string, exact, whole, ok bool) {
	l, ok := x.n.(*likeExpr)
	if !ok || l.compiled == nil {
		return term, "", false, false, false
	}
	prefix, exact, whole = l.compiled.prefix()
	return Expr{l.term}, prefix, exact, whole, true
}

// Call returns the name of a function, in upper case, and its arguments.
func (x Expr) Call() (name string, args []Expr, ok bool) {
	c, ok := x.n.(*call)
	if !ok {
		return "", nil, false
	}
	return c.function.name, exprsOf(c.args), true
}
