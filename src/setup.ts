/** `npm run setup`: the first run at a terminal, with the steps that the page offers too. */
import { createSetup } from "./setup/setup.ts";
import { runSetup } from "./setup/terminal.ts";

const { stdin: input, stdout: output } = process;
if (!input.isTTY) {
  process.stderr.write("npm run setup asks questions, so it needs a terminal.\n");
  process.exit(1);
}
const setup = createSetup({ env: process.env, folder: process.cwd() });
const isSaved = await runSetup({ setup, input, output });
process.exit(isSaved ? 0 : 1);
