package compiled

import (
	"mayfly/commands/scripts/bytecode"

	lua "github.com/yuin/gopher-lua"
)

// numberLists mends the SETLIST instructions of a function and those within. Each stores up to lua.FieldsPerFlush
// positional fields of a table constructor, and has the number of its list. gopher-lua v1.1.2
//   - repeats the last one for each field with a key that follows, though other values are in its registers by then;
//   - gives one that stores what a call or ... returns the number of the list before it, if that one is full;
//   - writes 0 for numbers above bytecode.MaxC.
//
// The result is the line of a constructor whose number has no place: the values of a call or ... come right after the last
// full list whose number is in its instruction. It is 0 if there is none.
func numberLists(p *lua.FunctionProto) (line int) {
	var lists [bytecode.MaxA + 1]int // of the constructor that is open in a register
	for pc := 0; pc < len(p.Code); pc++ {
		inst := p.Code[pc]
		a, wide := bytecode.A(inst), bytecode.C(inst) == 0
		switch inst >> 26 {
		case bytecode.NewTable:
			lists[a] = 0
		case bytecode.Closure:
			pc += int(p.FunctionPrototypes[bytecode.Bx(inst)].NumUpvalues)
		case bytecode.SetList:
			repeated := bytecode.B(inst) == lua.FieldsPerFlush && storesKey(p.Code[pc-1], a)
			if repeated {
				p.Code[pc] = bytecode.Nop << 26
			} else {
				lists[a]++
			}
			switch n := lists[a]; {
			case wide && repeated:
				p.Code[pc+1] = bytecode.Nop << 26
			case wide:
				p.Code[pc+1] = uint32(n)
			case n > bytecode.MaxC:
				return p.DbgSourcePositions[pc]
			case !repeated:
				p.Code[pc] = bytecode.WithC(inst, n)
			}
			if wide { // the number follows the instruction
				pc++
			}
		}
	}
	for _, inner := range p.FunctionPrototypes {
		if line := numberLists(inner); line > 0 {
			return line
		}
	}
	return 0
}

// storesKey reports whether an instruction stores a field with a key in the table that a register holds.
func storesKey(inst uint32, register int) bool {
	op := inst >> 26
	return (op == bytecode.SetTable || op == bytecode.SetTableKS) && bytecode.A(inst) == register
}
