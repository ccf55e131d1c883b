/** `npm run setup`: the first run in a terminal, with the same steps as the page. */
import { PLATFORMS } from "./platforms.ts";
import { loadModules } from "./port/module.ts";
import { createSetup } from "./setup/setup.ts";
import { runSetup } from "./setup/terminal.ts";

const { stdin: input, stdout: output } = process;
if (!input.isTTY) {
  process.stderr.write("npm run setup asks questions and needs a terminal.\n");
  process.exit(1);
}
const setup = createSetup({ env: process.env, folder: process.cwd(), modules: await loadModules(PLATFORMS) });
const isSaved = await runSetup({ setup, input, output });
process.exit(isSaved ? 0 : 1);
