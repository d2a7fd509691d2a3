// Runs programs beside this one, after the port of a server, one after the other. They share the process and
// what they load.
import { connect } from "./common.mjs";

const client = await connect();
for (const program of process.argv.slice(3)) {
  await client.flushAll();
  try {
    await import(`./${program}`);
    console.log(`${program} passed`);
  } catch (error) {
    console.log(program, error);
    process.exitCode = 1;
  }
}
process.exit(); // open connections do not keep it
