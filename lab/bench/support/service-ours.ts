/** Runs the service like `npm start`. The first argument is its environment. */
import { reportCpu } from "./service-cpu.ts";

reportCpu();
Object.assign(process.env, JSON.parse(process.argv[2] ?? "{}"));
await import("../../../src/main.ts");
