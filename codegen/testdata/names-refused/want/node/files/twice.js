export { twice } from "./index.js";
