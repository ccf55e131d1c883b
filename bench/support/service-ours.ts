/** The service as `npm start` runs it, with the environment that is given as the first argument. */
import { tellCpu } from "./service-cpu.ts";

tellCpu();
Object.assign(process.env, JSON.parse(process.argv[2] ?? "{}"));
await import("../../src/main.ts");
